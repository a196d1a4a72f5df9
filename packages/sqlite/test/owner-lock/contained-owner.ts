/** Owner of a thread in other namespaces; ends with its parent. */
import process from "node:process";
import { sqliteStore } from "@statewright/sqlite";
import { graph } from "../support/rows.ts";

const store = sqliteStore(process.argv[2] ?? "");
await store.claim({ ...graph, thread: "t" });
process.stdout.write("ready\n");
process.stdin.on("end", () => process.exit()).resume();
