"""What is run, how it is carried out, and where its results lie."""
