import { defineGraph, defineState, END, route, run, START } from "statewright";
import { toMachineJson } from "statewright/inspect";
import { createActor, createMachine, fromCallback, fromPromise, toPromise } from "xstate";
import { getShortestPaths } from "xstate/graph";
import * as z from "zod";

const Draft = defineState({ words: z.number().default(0) });

const writing = defineGraph({ name: "writing", state: Draft })
  .nodes({
    write: (state) => ({ words: state.words + 200 }),
    review: () => undefined,
  })
  .edges({
    [START]: "write",
    write: "review",
    review: route(["write", END], (state) => (state.words < 400 ? "write" : END)),
  });

// Export as JSON, and read it back.
const json = JSON.stringify(toMachineJson(writing));
const { guards } = writing.machine.implementations;
const again = createMachine(JSON.parse(json)).provide({ guards });
console.log("read back:", Object.keys(again.states).join(" "));

// Find the shortest path to each state.
const commits = [["write"], ["review"], []].map((to) => ({ type: "step.commit", to }));
const ends = ["write", "review"].map((node) => ({ type: `xstate.done.actor.${node}` }));
const paths = getShortestPaths(writing.machine, { events: [...commits, ...ends] });
const longest = Math.max(...paths.map((path) => path.steps.length));
console.log(`${paths.length} states, the farthest ${longest} steps away`);

// As a plain actor: nothing is saved, and this program chooses the route.
let words = 0;
const write = fromPromise(async () => {
  words += 200;
});
const review = fromPromise(async () => undefined);
const commit = fromCallback(({ self, sendBack }) => {
  const next = self.id === "write.commit" ? ["review"] : words < 400 ? ["write"] : [];
  sendBack({ type: "step.commit", to: next });
});
const actor = createActor(writing.machine.provide({ actors: { write, review, "step.commit": commit } }));
actor.start();
actor.send({ type: "step.commit", to: ["write"] });
await toPromise(actor);
console.log("the actor is", actor.getSnapshot().value, "with", words, "words");

// As a run: one record per transition.
const handle = run(writing, {});
handle.on((event) => {
  if (event.type !== "transition.taken" || event.event !== "step.commit") return;
  const asked = event.guards.map(({ guard, result }) => `${guard} ${result ? "yes" : "no"}`).join(", ");
  console.log(
    JSON.stringify(event.from),
    "→",
    JSON.stringify(event.to),
    `(${asked})`,
    Object.keys(event.changes).join(),
  );
});
await handle.result;

// As a run with an inspector.
const seen = new Map<string, number>();
await run(writing, { inspect: (event) => seen.set(event.type, (seen.get(event.type) ?? 0) + 1) }).result;
console.log([...seen].map(([type, count]) => `${count} ${type}`).join(", "));
