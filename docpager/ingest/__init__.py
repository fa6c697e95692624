"""Files and folders become stored documents: walk, plan, parse, embed, commit."""
