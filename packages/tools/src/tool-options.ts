/** What the makers of tools take: where the tools work. */
import type { World } from "@statewright/core";

/** Where tools work. The model never sees any of it. */
export interface ToolOptions {
  /** The folder that the tools work in; relative paths start there, and what lies outside is refused. */
  readonly root: string;
  /** Clock, timers and chance; the real ones by default. */
  readonly world?: World;
}
