"""What the product costs, each as a ratio to a program that does the bare minimum, measured in the same run."""
