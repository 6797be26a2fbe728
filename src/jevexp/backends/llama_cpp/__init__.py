"""Any GGUF model on any llama.cpp server: one next-token distribution a decision."""

from jevexp.backends.llama_cpp.backend import LlamaCpp

__all__ = ["LlamaCpp"]
