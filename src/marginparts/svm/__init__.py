"""Linear classifiers: dual coefficients, the last SVM, the transductive one, probabilities."""
