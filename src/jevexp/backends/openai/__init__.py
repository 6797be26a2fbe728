"""Models on OpenAI-compatible servers: written probabilities, and next-token probabilities."""
