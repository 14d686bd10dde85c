"""Reports of sweeps: sections, the papers' figures, and the pages that contain them."""
