// Prints the metrics of the code house: names, comments and structure of packages/*/src.
//
//   node scripts/house.mjs                  the table
//   node scripts/house.mjs --json           the same numbers as JSON
//   node scripts/house.mjs --list names     the offenders of one row; `--list` alone prints the rows
//   node scripts/house.mjs --root <folder>  measures another checkout
//
// Reports only: the exit code is 0 also for a value outside its range.

import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measure } from "./house/measure.mjs";
import { formatList, formatTable, listRows } from "./house/report.mjs";
import { readPackages } from "./house/sources.mjs";

const repository = join(dirname(fileURLToPath(import.meta.url)), "..");

process.exitCode = main(process.argv.slice(2));

function main(args) {
  // Ignores EPIPE: `| head` closes the pipe early.
  process.stdout.on("error", (error) => {
    if (error.code !== "EPIPE") throw error;
  });
  let options;
  try {
    options = readOptions(args);
  } catch (error) {
    return fail(error.message);
  }
  const packages = readPackages(options.root);
  if (packages.length === 0)
    return fail(`expected packages/*/src in ${options.root}, got none. Pass the root of a checkout.`);
  const { metrics, offenders } = measure(options.root, packages);
  if (options.json) console.log(JSON.stringify(metrics, undefined, 2));
  else if (options.list !== undefined) console.log(formatList(offenders[options.list]));
  else console.log(formatTable(metrics, offenders));
  return 0;
}

/** Throws for an unknown option or row. */
function readOptions(args) {
  const rows = listRows();
  const { values } = parseArgs({
    args: args.at(-1) === "--list" ? [...args, ""] : args,
    options: { root: { type: "string" }, json: { type: "boolean" }, list: { type: "string" } },
  });
  if (values.list !== undefined && !rows.includes(values.list))
    throw new Error(`--list: expected a row, got ${JSON.stringify(values.list)}. Use one of: ${rows.join(", ")}.`);
  return { root: resolve(values.root ?? repository), json: values.json === true, list: values.list };
}

function fail(problem) {
  console.error(`house: ${problem}`);
  return 1;
}
