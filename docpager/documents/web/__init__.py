"""What is written in markup: HTML, EPUB, mail, XML."""
