/** Properties use a fixed seed; PROPERTY_SEED sets another one. */
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env["PROPERTY_SEED"] ?? 20_261_121) });
