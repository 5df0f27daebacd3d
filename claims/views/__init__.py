"""Pages of what people ask for and get. Each view: who asks, what was sent, one service or selector, one answer."""
