/** Process that migrates a file to a second format and is killed before the statement of this number; 0 for no kill. */
import process from "node:process";
import { openDatabase } from "../../../src/file/open-database.ts";
import { createSecondFormat } from "../second-format.ts";

const [file = "", killedAt = "0"] = process.argv.slice(2);
const { db } = openDatabase(file, { steps: createSecondFormat(Number(killedAt)) });
process.stdout.write(String(db.pragma("user_version", { simple: true })));
db.close();
