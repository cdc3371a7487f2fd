"""An experiment of any language beside the reference: its `run` several times, with either TVM in turn."""
