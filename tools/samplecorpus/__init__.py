"""The sample corpus: an invented harbour town, its papers, and questions planted in them."""
