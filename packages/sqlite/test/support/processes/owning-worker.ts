/** Worker thread that claims the thread "t" of a file and keeps it. */
import { parentPort, workerData } from "node:worker_threads";
import { sqliteStore } from "@statewright/sqlite";
import { graph } from "../rows.ts";

const store = sqliteStore(String(workerData));
await store.claim({ ...graph, thread: "t" });
parentPort?.on("message", () => undefined);
parentPort?.postMessage("claimed");
