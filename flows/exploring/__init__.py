"""The page of `koco explore`: a local server that answers questions on a store's runs."""
