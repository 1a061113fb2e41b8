"""How results show themselves: labels, small pictures in HTML, progress, and advice for habits of tensors."""
