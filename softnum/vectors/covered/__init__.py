"""Coverage as files: softnum's JSON, UCIS XML and cocotb-coverage's XML and YAML, out, in, and added up."""
