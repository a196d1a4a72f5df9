/** Weather: a minimal tool, and a tool with a choice of units. Offline, with readings from a table. */
import { defineTool, ToolError } from "statewright";
import * as z from "zod";

/** Creates an error function with a message for a missing argument. Other errors keep their default message. */
const createMissingError =
  (text: string) =>
  ({ input }: { readonly input?: unknown }): string | undefined =>
    input === undefined ? text : undefined;

export const currentWeather = defineTool({
  name: "get_weather",
  label: "Weather",
  description: "Get current weather for a city.",
  input: z.object({ city: z.string({ error: createMissingError("missing city") }).describe("City name") }),
  effect: "pure",
  run: ({ city }) => `Weather in ${city}: 72°F, sunny`,
});

interface Reading {
  readonly celsius: number;
  readonly condition: string;
  readonly humidity: number;
}

const readings: Readonly<Record<string, Reading>> = {
  Oslo: { celsius: 7, condition: "cloudy", humidity: 81 },
  Lima: { celsius: 19, condition: "foggy", humidity: 88 },
};

export const weatherInUnits = defineTool({
  name: "weather_in_units",
  label: "Weather Report",
  description: "Get current weather for a location in the given units.",
  input: z.object({
    location: z.string().describe("City name"),
    units: z
      .union([z.literal("celsius"), z.literal("fahrenheit")])
      .optional()
      .describe("Temperature units; fahrenheit when absent"),
  }),
  effect: "pure",
  run: ({ location, units }) => {
    const reading = Object.hasOwn(readings, location) ? readings[location] : undefined;
    if (reading === undefined) throw ToolError.notFound(`No weather station in ${location}.`);
    const { celsius, condition, humidity } = reading;
    const temperature = units === "celsius" ? celsius : Math.round(celsius * 1.8 + 32);
    return {
      content: `Weather in ${location}: ${condition}, ${temperature}°${units === "celsius" ? "C" : "F"}`,
      details: { temperature, condition, humidity, location },
    };
  },
});
