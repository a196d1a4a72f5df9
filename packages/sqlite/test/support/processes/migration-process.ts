/** A process that brings a file to a second format, and is killed before the statement of this number; 0 lets it live. */
import process from "node:process";
import { openDatabase } from "../../../src/file/open-database.ts";
import { secondFormat } from "../second-format.ts";

const [file = "", killedAt = "0"] = process.argv.slice(2);
const { db } = openDatabase(file, { steps: secondFormat(Number(killedAt)) });
process.stdout.write(String(db.pragma("user_version", { simple: true })));
db.close();
