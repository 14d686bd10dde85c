"""Sources of LIBSVM, VW, CSV, ARFF and space-separated text."""
