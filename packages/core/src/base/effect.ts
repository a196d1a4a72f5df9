/** The class of an effect: what may happen to it after a crash. */

/** May an effect be repeated? `pure` and `idempotent` run again after a crash, `once` is never repeated without a decision. */
export type EffectClass = "pure" | "idempotent" | "once";

/** What an effect is: a node's body, a model call, a tool call, a recorded step. */
export type EffectKind = "task" | "model" | "tool" | "step";
