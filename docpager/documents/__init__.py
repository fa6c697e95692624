"""From a file's bytes to page texts and chunks: loaders, sandbox, chunking."""
