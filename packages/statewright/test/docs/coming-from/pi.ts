import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import {
  createAgent,
  decide,
  defineContext,
  defineMiddleware,
  defineTool,
  getMessageText,
  toolRegistry,
} from "statewright";
import { fromPiTool, type PiTool, piDialect } from "statewright/adapter";
import * as z from "zod";

const albums = new Map([["Blue", ["All I Want", "Carey"]]]);
const played: string[] = [];

// a pi tool, unchanged
const listTracks: PiTool = {
  name: "listTracks",
  label: "List Tracks",
  description: "List the tracks of an album.",
  parameters: {
    type: "object",
    properties: { album: { type: "string", description: "Its name" } },
    required: ["album"],
  },
  execute: async (_toolCallId, params, signal, onUpdate) => {
    const tracks = albums.get(String(params["album"]));
    if (!tracks) throw new Error(`Album not found: ${params["album"]}`);
    const found: string[] = [];
    for (const track of tracks) {
      if (signal?.aborted) throw new Error("Listing cancelled");
      found.push(track);
      onUpdate?.({
        content: [{ type: "text", text: `Found ${found.length} so far` }],
        details: { found: [...found] },
      });
    }
    return {
      content: [{ type: "text", text: found.join("\n") }],
      details: { found },
    };
  },
};

// adapt it
const tracks = fromPiTool(listTracks, {
  effect: "pure",
  safety: { access: "read" },
});

// the same tool with defineTool
const findTracks = defineTool({
  name: "find_tracks",
  label: "Find Tracks",
  description: "List the tracks of an album.",
  input: z.object({ album: z.string().describe("Its name") }),
  effect: "pure",
  safety: { access: "read" },
  run: ({ album }, { signal, update }) => {
    const names = albums.get(album);
    if (!names) throw new Error(`Album not found: ${album}`);
    const found: string[] = [];
    for (const name of names) {
      signal.throwIfAborted();
      found.push(name);
      update?.({
        content: `Found ${found.length} so far`,
        details: { found },
      });
    }
    return { content: found.join("\n"), details: { found } };
  },
});

// hidden arguments
const Listener = defineContext({ room: z.string() });

const play = defineTool({
  name: "play",
  description: "Play a track in the room of the listener.",
  input: z.object({ track: z.string().describe("Its name") }),
  inject: { room: Listener.from(({ room }) => room) },
  run: async ({ track }, { injected, progress, wait }) => {
    progress(`Playing in the ${injected.room}`);
    await wait(1_000);
    played.push(track);
    return `Played ${track}`;
  },
});

// hooks
const quiet = defineMiddleware({
  name: "quiet",
  required: true,
  beforeTool: ({ call }) => (play.is(call) && call.args.track === "Noise" ? decide.deny("Not at night") : undefined),
  afterTool: ({ result }) =>
    result.isError ? undefined : { ...result, details: { ...Object(result.details), audited: true } },
});

const model = scriptedModel([
  [call("list_tracks", { album: "Blue" }), call(findTracks, { album: "Blue" })],
  [call(play, { track: "Carey" }), call(play, { track: "Noise" }), call(findTracks, { album: "Red" })],
  say("That was Carey."),
]);

// an agent
const tools = toolRegistry([tracks, findTracks, play]);
const agent = createAgent({
  name: "music",
  model,
  instructions: "You play music.",
  context: Listener,
  tools,
  middleware: [quiet],
  strategy: "sequential",
  steering: "finish-batch",
});

// events
const world = virtualClock();
const run = agent.run({ world, input: "Play Blue.", context: { room: "kitchen" } });
const translate = piDialect();
const unsubscribe = run.on((event) => {
  for (const moment of translate(event)) {
    if (moment.type === "tool_execution_start") console.log(`start ${moment.toolName} ${JSON.stringify(moment.args)}`);
    else if (moment.type === "tool_execution_update") console.log(`  ${JSON.stringify(moment.partialResult.content)}`);
    else if (moment.type === "tool_execution_end")
      console.log(`end ${moment.toolName} ${moment.isError ? "failed" : JSON.stringify(moment.result.details)}`);
  }
});

// steering
run.on((event) => {
  if (event.type === "tool.progress") void run.steer("A little quieter, please.");
});

await world.advance(1_000);
const { state } = await run.result;
unsubscribe();
for (const message of state.messages.slice(4)) console.log(`${message.role}: ${getMessageText(message) || "(calls)"}`);
