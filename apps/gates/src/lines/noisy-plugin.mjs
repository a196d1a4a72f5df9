// A plugin that writes for each call the bytes that the call asks for, in the pieces in which it gives them.
const parameters = { type: "object", properties: { pieces: { type: "array", items: { type: "string" } } } };
const [protocol] = process.argv.slice(2);
const description = { name: "noisy", description: "Writes what it is given.", parameters, effect: "pure" };
const more = protocol === "2" ? { protocol: 2, capabilities: ["concurrent", "update"] } : {};

/** Calls side by side would mix their pieces: each is written whole, the next after it. */
let writing = Promise.resolve();
const write = async (pieces) => {
  for (const piece of pieces) {
    process.stdout.write(Buffer.from(piece, "base64"));
    // Now and then the reader gets a piece by itself.
    if (piece.length < 12) await new Promise((resolve) => setImmediate(resolve));
  }
};

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    if (message.type === "describe") process.stdout.write(`${JSON.stringify({ ...description, ...more })}\n`);
    if (message.type === "call") writing = writing.then(() => write(message.params.pieces));
  }
});
