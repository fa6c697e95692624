"""Many questions from a file: asked, scored, kept, summed up, compared, reported."""
