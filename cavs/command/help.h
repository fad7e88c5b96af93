// The text of `cavs help`, made from the table of flags. Pure functions, safe from any thread.
#pragma once

#include <string>

#include "cavs/command/flag_table.h"

namespace cavs {

// What `cavs help SUBCOMMAND` prints, or with null what `cavs help` prints: purpose, an example, and every flag with
// its values, unit and default. Lines have at most 100 characters and end in '\n'.
std::string HelpText(const SubCommandSpec* command);

}  // namespace cavs
