"""Office formats: Word, Excel, PowerPoint, OpenDocument, RTF."""
