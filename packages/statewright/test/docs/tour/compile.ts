import { writeFileSync } from "node:fs";
import { toSvg } from "@statewright/pictures";
import {
  checkGraph,
  defineGraph,
  defineState,
  END,
  isStatewrightError,
  memoryStore,
  route,
  run,
  START,
} from "statewright";
import { toMachineJson, toMermaid } from "statewright/inspect";
import * as z from "zod";
import { article } from "./define.ts";

const Note = defineState({ text: z.string().default("") });
const nodes = defineGraph({ name: "note", state: Note }).nodes({
  write: ({ text }) => ({ text: `${text}!` }),
  check: () => undefined,
  lost: () => undefined,
});

// all problems at once
try {
  nodes.edges({ [START]: "write", write: "check", check: "write", lost: END });
} catch (error) {
  if (isStatewrightError(error, "invalid_graph")) console.log(error.message.replaceAll("; ", "\n"));
}

// one node at a time
const note = defineGraph({ name: "note", state: Note })
  .nodes({ write: ({ text }) => ({ text: `${text}!` }), check: () => undefined })
  .edges({
    [START]: "write",
    write: "check",
    check: route(["write", END], ({ text }) => (text.length < 2 ? "write" : END)),
  });
const noteRun = run(note, {});
noteRun.on((event) => {
  if (event.type === "transition.taken") console.log(event.event, JSON.stringify(event.to));
});
await noteRun.result;

// parallel work
const states: unknown[] = [];
const articleRun = run(article, { store: memoryStore(), input: { topic: "bees" }, context: { editor: "ann" } });
articleRun.on((event) => {
  if (event.type === "transition.taken" && event.effects.includes("spell")) states.push(event.to);
});
await articleRun.result;
console.log(states[0]);

// pictures
process.stdout.write(toMermaid(note));
writeFileSync("article.svg", toSvg(article));
writeFileSync("article.json", JSON.stringify(toMachineJson(article)));
console.log(checkGraph(article).violations.length, "violations");
