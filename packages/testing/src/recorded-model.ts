/**
 * A model whose answers stand in a file: recorded once with a real model, then replayed without network and key. Requests are
 * recognised by what they say, whatever ids and times they have; one that was never recorded is refused with what differs.
 */
import { type Model, type ModelDelta, type ModelReply, type ModelRequest, StatewrightError } from "@statewright/core";
import { type Recording, type RecordingMode, recordingOf } from "./recording/recording.ts";
import { cleanDeltas, redactor } from "./recording/redact.ts";
import { differences, digestOf, normalised } from "./recording/request-digest.ts";
import { checkTranscript } from "./transcript.ts";

/** What `recordedModel` takes. */
export interface RecordedModelOptions {
  /** The model that answers where something is recorded. */
  readonly model?: Model;
  /** Default `replay`. */
  readonly mode?: RecordingMode;
  /**
   * Texts that never reach the file, beside what looks like a key and what stands under a name such as `password`. Both sides
   * of a recording see the text that stands in their place.
   */
  readonly redact?: readonly (string | RegExp)[];
  /** Take out of a request what differs from run to run, such as today's date in the instructions. */
  readonly normalise?: (request: ModelRequest) => ModelRequest;
}

/** A model out of a file. */
export interface RecordedModel extends Model {
  readonly script?: undefined;
  /** Every request as it arrived, also those that were refused. */
  readonly requests: readonly ModelRequest[];
}

/**
 * A model that replays the recording at `path`, and makes it where `mode` says so. The same request again gets what was
 * recorded for it next, then the last of that. Failures are not recorded: they pass through. The file is JSON to be read and
 * kept beside the test; each answer is added to it as a whole, under another name first.
 *
 * ```ts
 * const model = recordedModel(new URL("weather.json", import.meta.url), { model: aiModel(anthropic("claude-sonnet-4-5")), mode: "auto" });
 * ```
 *
 * Throws `invalid_option` for a file that is not there or no recording, and for a mode that needs a model without one.
 * Rejects with `model_failed` for a request that the file lacks, and with `invalid_transcript`.
 */
export function recordedModel(path: string | URL, options: RecordedModelOptions = {}): RecordedModel {
  const { model, mode = "replay", redact = [], normalise = asItIs } = options;
  const clean = redactor(redact);
  if (mode !== "replay" && model === undefined)
    throw new StatewrightError("invalid_option", {
      what: `the recorded model is to ${mode === "auto" ? "record what its file lacks" : "record"} and has no model to ask`,
      next: 'Give { model } as well, or the mode "replay"',
    });
  const recording = recordingOf(path, mode, model?.id);
  const requests: ModelRequest[] = [];
  /** How often each request was answered. */
  const given = new Map<string, number>();

  const ask = async (
    asked: Model,
    digest: string,
    shown: unknown,
    ...[request, at]: Parameters<Model["respond"]>
  ): Promise<ModelReply> => {
    const deltas: ModelDelta[] = [];
    const reply = await asked.respond(request, {
      ...at,
      delta: (delta) => {
        deltas.push(delta);
        at.delta?.(delta);
      },
    });
    recording.add({ digest, request: shown, reply: clean(reply), deltas: cleanDeltas(deltas, clean) });
    return reply;
  };

  return {
    id: model?.id ?? recording.model,
    requests,
    ...(model?.images === undefined ? {} : { images: model.images }),
    respond: async (request, at) => {
      requests.push(structuredClone(request));
      checkTranscript(request.messages);
      at.signal.throwIfAborted();
      const shown = normalised(clean(normalise(request)));
      const digest = digestOf(shown);
      const nth = given.get(digest) ?? 0;
      given.set(digest, nth + 1);
      const known = mode === "record" ? [] : recording.entries().filter((entry) => entry.digest === digest);
      const entry = known[Math.min(nth, known.length - 1)];
      if (entry === undefined) {
        if (model === undefined || mode === "replay") throw unknown(recording, shown);
        return ask(model, digest, shown, request, at);
      }
      for (const delta of entry.deltas) {
        at.delta?.(delta);
        await Promise.resolve();
        at.signal.throwIfAborted();
      }
      return structuredClone(entry.reply);
    },
  };
}

function asItIs(request: ModelRequest): ModelRequest {
  return request;
}

/** A request that nobody recorded, and how it differs from the one that is nearest. */
function unknown({ name, entries }: Recording, shown: unknown): StatewrightError {
  const apart = entries().map((entry, index) => ({ index, found: differences(entry.request, shown) }));
  const [nearest] = apart.sort((one, other) => one.found.length - other.found.length);
  const said =
    nearest === undefined
      ? "it is empty"
      : `the nearest, number ${nearest.index + 1}, differs in ${nearest.found.slice(0, mostShown).join("; ")}${nearest.found.length > mostShown ? `; and ${nearest.found.length - mostShown} more` : ""}`;
  return new StatewrightError("model_failed", {
    what: `the recording ${name} has no answer to this request: ${said}`,
    next: 'Mend what differs, or record it: recordedModel(path, { model, mode: "auto" })',
    details: { retryable: false, kind: "invalid_request", differences: nearest?.found ?? [] },
  });
}

const mostShown = 5;
