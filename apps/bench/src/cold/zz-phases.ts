import { defineGraph, defineState, END, run, START } from "statewright";
import * as z from "zod";
import { coldGraph } from "./shape.ts";
const [shape, size] = process.argv.slice(2);
const declared = coldGraph(shape as never, Number(size));
const marks: [string, number][] = [];
let last = process.cpuUsage();
function mark(name: string) { const { user, system } = process.cpuUsage(last); marks.push([name, user + system]); last = process.cpuUsage(); }
const nodes = Object.fromEntries(declared.map(([name], index) => [name, () => { if (index === 0) { mark("run"); console.log(JSON.stringify(Object.fromEntries(marks))); process.exit(0); } }]));
const edges: any = Object.fromEntries(declared.map(([name, targets]) => [name, targets.length === 0 ? END : targets]));
mark("decl");
const state = defineState({ n: z.number().default(0) });
mark("state");
const a = defineGraph({ name: "cold", state });
mark("options");
const b = a.nodes(nodes);
mark("nodes");
const graph = b.edges({ ...edges, [START]: "node0" });
mark("edges+checks");
if (process.argv[4] === "machine") { graph.machine; mark("machine"); }
const r = run(graph, { input: {} });
mark("runcall");
await r.result;
