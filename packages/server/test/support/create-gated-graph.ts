/** Graph whose first node waits until the test opens it. */
import { channel, defineGraph, defineState, END, type Graph, START } from "@statewright/core";
import * as z from "zod";

/** Graph `gated` with its gate. */
export interface GatedGraph {
  readonly graph: Graph;
  /** Resolves when the first node runs. */
  readonly isEntered: Promise<void>;
  /** Lets the first node end. */
  readonly open: () => void;
}

/** Creates the graph `gated`, whose nodes write "first" and "second". */
export function createGatedGraph(): GatedGraph {
  let open = (): void => undefined;
  let enter = (): void => undefined;
  const isOpen = new Promise<void>((resolve) => {
    open = resolve;
  });
  const isEntered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const Log = defineState({ draft: z.string().default(""), log: channel.list(z.string()) });
  const graph = defineGraph({ name: "gated", state: Log })
    .nodes({
      first: async () => {
        enter();
        await isOpen;
        return { log: ["first"] };
      },
      second: () => ({ log: ["second"] }),
    })
    .edges({ [START]: "first", first: "second", second: END });
  return { graph, isEntered, open: () => open() };
}
