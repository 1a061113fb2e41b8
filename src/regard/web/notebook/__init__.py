"""The viewer inside a notebook: the same questions as over HTTP, carried by widget messages."""
