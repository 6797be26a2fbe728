"""Tests of the llama.cpp provider against a scripted server; real ones are in tests/live."""
