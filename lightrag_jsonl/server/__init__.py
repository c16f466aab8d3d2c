"""An HTTP server for indexes: REST, and the chat protocols of OpenAI and Ollama."""
