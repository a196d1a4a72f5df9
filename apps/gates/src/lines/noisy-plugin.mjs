// Plugin that writes the bytes requested by each call, in the requested chunks.
const parameters = { type: "object", properties: { pieces: { type: "array", items: { type: "string" } } } };
const [protocol] = process.argv.slice(2);
const description = { name: "noisy", description: "Writes the given bytes.", parameters, effect: "pure" };
const more = protocol === "2" ? { protocol: 2, capabilities: ["concurrent", "update"] } : {};

/** Writes the chunks of one call completely before the next call, because concurrent writes would mix chunks. */
let writing = Promise.resolve();
const write = async (pieces) => {
  for (const piece of pieces) {
    process.stdout.write(Buffer.from(piece, "base64"));
    // Small chunks are sometimes delivered separately.
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
