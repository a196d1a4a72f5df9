/** Another program with the file open: takes the write lock on request and reports it. */
import process from "node:process";
import Database from "better-sqlite3";

const db = new Database(process.argv[2] as string, { timeout: 5_000 });
process.on("message", (order: "take" | "give") => {
  db.exec(order === "take" ? "BEGIN IMMEDIATE" : "COMMIT");
  process.send?.(order);
});
process.on("disconnect", () => process.exit());
process.send?.("ready");
