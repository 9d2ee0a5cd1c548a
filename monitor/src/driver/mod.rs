//! Drives the engine: hands it inputs and carries out its effects.

pub mod replay;
