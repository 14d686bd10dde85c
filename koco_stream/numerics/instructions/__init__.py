"""Hand-written instructions for the processor's registers, each one text with two back-ends."""
