/** Worker with little memory whose node returns 256 MB in several shapes; posts the refusal of each shape. */
import { parentPort } from "node:worker_threads";
import * as z from "zod";
import { defineGraph, defineState, END, isStatewrightError, memoryStore, run, START } from "../../src/index.ts";

const piece = "x".repeat(2 ** 20);
const shapes: Readonly<Record<string, () => unknown>> = {
  "a list of texts": () => Array.from({ length: 256 }, () => piece),
  "one text": () => piece.repeat(256),
  "texts in a map": () => new Map(Array.from({ length: 256 }, (_, index) => [index, piece])),
  bytes: () => new Uint8Array(2 ** 28),
};

const State = defineState({ big: z.unknown() });

for (const [shape, give] of Object.entries(shapes)) {
  for (const store of [undefined, memoryStore()]) {
    for (const way of ["returned", "recorded"] as const) {
      const graph = defineGraph({ name: "large", state: State })
        .nodes({
          offer: async (_state, { step }) => {
            const big = way === "recorded" ? await step("make", give) : give();
            return { big };
          },
        })
        .edges({ [START]: "offer", offer: END });
      const refused = await run(graph, { input: {}, ...(store === undefined ? {} : { store }) }).result.then(
        () => "taken",
        (error: unknown) => (isStatewrightError(error) ? error.message : String(error)),
      );
      parentPort?.postMessage({ shape, stored: store !== undefined, way, refused });
    }
  }
}
