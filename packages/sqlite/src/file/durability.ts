/**
 * Durability of a commit after a power failure: `full` loses no acknowledged commit, `normal` may lose the last
 * commits, but leaves no gap.
 */
export type Durability = "full" | "normal";
