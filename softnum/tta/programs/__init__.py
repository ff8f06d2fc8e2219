"""Programs for simulators: an iteration's matrix products as C for gem5, as CUDA and as PTX for GPGPU-Sim."""

from softnum.tta.programs.folder import PROGRAM_FORMATS, ProgramFormat, export_program

__all__ = ["PROGRAM_FORMATS", "ProgramFormat", "export_program"]
