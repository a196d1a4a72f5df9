/** How a commit meets a power cut: `full` loses nothing that was told, `normal` may lose the last commits, never a hole. */
export type Durability = "full" | "normal";
