"""PDF: text, headings, tables, forms, running heads, quality, character recognition."""
