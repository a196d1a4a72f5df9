/** A process that runs a growing graph as far as it comes, and says how it ended and what the file has of it. */
import process from "node:process";
import { run } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { first, growing } from "../growing-graph.ts";

const [file = "", diary = "", bytes = "", rounds = ""] = process.argv.slice(2);
const graph = growing(diary, Number(bytes), Number(rounds));
const store = sqliteStore(file);
const result = await run(graph, { store, thread: "t", input: first, maxSteps: 10_000 }).result;
const [row] = await store.runs();
const code = "cause" in result ? result.cause.code : undefined;
process.stdout.write(JSON.stringify({ status: result.status, code, row: row?.status, cause: row?.error?.code }));
store.close();
