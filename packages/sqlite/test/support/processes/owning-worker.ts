/** Worker thread that claims the thread "t" of a file and keeps it. */
import { parentPort, workerData } from "node:worker_threads";
import { graph } from "../rows.ts";
import { sqliteStore } from "../sqlite-store.ts";

const store = sqliteStore(String(workerData));
await store.claim({ ...graph, thread: "t" });
parentPort?.on("message", () => undefined);
parentPort?.postMessage("claimed");
