/** Process that runs a growing graph as far as possible, and prints its end and the content of the file. */
import process from "node:process";
import { run } from "@statewright/core";
import { createGrowingGraph, first } from "../growing-graph.ts";
import { sqliteStore } from "../sqlite-store.ts";

const [file = "", diary = "", bytes = "", rounds = ""] = process.argv.slice(2);
const graph = createGrowingGraph(diary, Number(bytes), Number(rounds));
const store = sqliteStore(file);
const result = await run(graph, { store, thread: "t", input: first, maxSteps: 10_000 }).result;
const [row] = await store.runs();
const code = "cause" in result ? result.cause.code : undefined;
process.stdout.write(JSON.stringify({ status: result.status, code, row: row?.status, cause: row?.error?.code }));
await store.close();
