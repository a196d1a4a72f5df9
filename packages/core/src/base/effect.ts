/** Effect classes and kinds. */

/**
 * Repetition rule of an effect. `pure` and `idempotent` effects run again after a crash; a `once` effect is never
 * repeated without a decision.
 */
export type EffectClass = "pure" | "idempotent" | "once";

/** Source of an effect: a node body, a model call, a tool call or a recorded step. */
export type EffectKind = "task" | "model" | "tool" | "step";
