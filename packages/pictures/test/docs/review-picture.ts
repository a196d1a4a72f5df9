import { channel, defineGraph, defineState, END, fanOut, inputNode, route, START } from "@statewright/core";
import { toSvg } from "@statewright/pictures";
import * as z from "zod";

const Review = defineState({ files: channel.list(z.string()), findings: channel.list(z.string()) });

const review = defineGraph({ name: "review", state: Review })
  .nodes({
    collect: () => ({ files: ["a.ts", "b.ts"] }),
    inspect: inputNode(z.string(), (_state, { input }) => ({ findings: [input] })),
    judge: () => undefined,
  })
  .edges({
    [START]: "collect",
    collect: fanOut("inspect", (state) => state.files, { otherwise: END }),
    inspect: "judge",
    judge: route(["collect", END], (state) => (state.findings.length > 9 ? END : "collect")),
  });

const tested = new Set(["__start__ -> collect", "collect -> inspect", "inspect -> judge"]);
const svg = toSvg(review, {
  direction: "right",
  mark: (part) => ("from" in part && !tested.has(part.id) ? "bad" : undefined),
});
console.log(svg);
