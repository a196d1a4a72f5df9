// Answers as a plugin did when it was recorded: to each line that it was sent then, the line that it gave.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const lines = readFileSync(process.argv[2] ?? "", "utf8").split("\n");
const answers = new Map();
lines.forEach((line, index) => {
  if (line.startsWith("> ")) answers.set(line.slice(2), lines[index + 1]?.slice(2));
});
for await (const line of createInterface({ input: process.stdin })) {
  const answer = answers.get(line);
  if (answer === undefined) process.stderr.write(`not recorded: ${line}\n`);
  else process.stdout.write(`${answer}\n`);
}
