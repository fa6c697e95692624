"""Models: chats in every tool mode, embedders, the embedded model, token counting."""
