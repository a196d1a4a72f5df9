/** Every property is tried with the same values in every run; PROPERTY_SEED tries others. */
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env["PROPERTY_SEED"] ?? 20_261_121) });
