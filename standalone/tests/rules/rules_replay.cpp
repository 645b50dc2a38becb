// Replays measured calls of ttnn 0.70.1 against the CPU backend: both accept or refuse the same
// calls, and what they return has the same data types, layouts, shapes and memory.
//
//     rules_replay <table> <differences> [--selection] [<operation>...]
//
// If $RULES_REFUSALS names a file, the messages of all matching refusals are written to it.
//
// Ends with status 1 if a row differs that <differences> does not list, or if a line there matches
// no row that differs, which is not asked of a selection of rows or operations.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <regex>
#include <set>

#include "call.hpp"

namespace rules {

namespace {

/// A line of the file of differences: rows that differ on purpose.
struct Difference {
    std::regex operation;
    /// Matches "<variant> | <inputs> | <status>", where the inputs are written as in describe().
    std::regex pattern;
    std::string text;
    std::size_t rows = 0;
};

enum class Outcome { agrees, differs, listed, skipped };

struct Counts {
    std::size_t agrees = 0;
    std::size_t differs = 0;
    std::size_t listed = 0;
    std::size_t skipped = 0;
};

struct Replay {
    Operations operations;
    std::vector<Difference> differences;
    std::map<std::string, Counts> counts;
    std::map<std::string, std::size_t> skipped;
    std::map<std::string, std::size_t> shown;
    std::set<std::string> refusals;
};

constexpr std::size_t kShownRows = 8;
std::string current_row;

/// The real library's crashes are refusals here: a crash of the backend names its row.
void report_crash(int signal) {
    const std::string text =
        "the CPU backend died (signal " + std::to_string(signal) + ") in " + current_row + "\n";
    const auto written = write(STDERR_FILENO, text.data(), text.size());
    _exit(written < 0 ? 3 : 2);
}

std::vector<Difference> read_differences(const char* file) {
    std::ifstream stream(file);
    if (!stream) {
        throw std::runtime_error(std::string("cannot read ") + file);
    }
    std::vector<Difference> differences;
    std::string line;
    while (std::getline(stream, line)) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        const auto fields = split(line, '\t');
        if (fields.size() != 3) {
            throw std::runtime_error(std::string(file) + ": not three columns: " + line);
        }
        differences.push_back({std::regex(fields[0]), std::regex(fields[1]), line});
    }
    return differences;
}

bool is_listed(Replay& replay, const Row& row) {
    std::string text = row.variant + " |";
    for (const Input& input : row.inputs) {
        text += " " + input.shape + ":" + input.dtype + ":" + input.layout + ":" + input.storage;
    }
    text += " | " + row.status;
    bool listed = false;
    for (Difference& difference : replay.differences) {
        if (std::regex_match(row.op, difference.operation) &&
            std::regex_search(text, difference.pattern)) {
            ++difference.rows;
            listed = true;
        }
    }
    return listed;
}

Operations placed_operations() {
    Operations operations;
    for (const auto& add : {add_placed_attention, add_placed_creation, add_placed_elementwise,
                            add_placed_heads, add_placed_matmul, add_placed_moves, add_placed_rows,
                            add_placed_shapes, add_placed_windows}) {
        add(operations);
    }
    return operations;
}

Operations all_operations() {
    Operations operations;
    for (const auto& add :
         {add_attention, add_binary, add_caches, add_convolution, add_creation, add_data_movement,
          add_heads, add_indexing, add_matmul, add_memory, add_normalization, add_pool,
          add_reduction, add_tensors, add_ternary, add_unary}) {
        add(operations);
    }
    return operations;
}

/// The reason to skip a row that does not apply to C++, or nothing.
std::string reason_to_skip(const Row& row) {
    if (row.message.starts_with("TypeError: no such overload")) {
        return "the Python binding has no such overload";
    }
    return row.status == "missing" ? "the release has no such operation" : "";
}

void show(Replay& replay, const Row& row, const std::string& found) {
    if (++replay.shown[row.op] <= kShownRows || std::getenv("RULES_SHOW_ALL") != nullptr) {
        const std::string expected =
            row.accepted() ? describe(row.result) : row.status + " " + row.message;
        std::printf("%zu: %s\n    release: %s\n    here:    %s\n", row.line, describe(row).c_str(),
                    expected.c_str(), found.c_str());
    }
}

Outcome skip(Replay& replay, const std::string& reason) {
    ++replay.skipped[reason];
    return Outcome::skipped;
}

Outcome replay_row(Replay& replay, const Row& row) {
    if (const std::string reason = reason_to_skip(row); !reason.empty()) {
        return skip(replay, reason);
    }
    const auto operation = replay.operations.find(row.op);
    if (operation == replay.operations.end()) {
        return skip(replay, "no call is made of " + row.op);
    }
    current_row = std::to_string(row.line) + ": " + describe(row);
    Call call(row);
    bool same = false;
    std::string found;
    try {
        const Results results = operation->second(call);
        if (!call.unread().empty()) {
            return skip(replay, row.op + ": no C++ call for '" + call.unread() + "'");
        }
        const Result returned = results.joined(row.tells_shards);
        same = row.accepted() && returned == row.result;
        found = describe(returned);
    } catch (const Unmapped& unmapped) {
        return skip(replay, row.op + ": " + unmapped.reason);
    } catch (const std::exception& refusal) {
        same = !row.accepted();
        found = std::string("refused: ") + refusal.what();
        if (same) {
            replay.refusals.insert(refusal.what());
        }
    }
    if (same) {
        return Outcome::agrees;
    }
    if (is_listed(replay, row)) {
        return Outcome::listed;
    }
    show(replay, row, found);
    return Outcome::differs;
}

void count(Counts& counts, Outcome outcome) {
    switch (outcome) {
        case Outcome::agrees:
            ++counts.agrees;
            return;
        case Outcome::differs:
            ++counts.differs;
            return;
        case Outcome::listed:
            ++counts.listed;
            return;
        case Outcome::skipped:
            ++counts.skipped;
            return;
    }
}

/// Prints the table; returns whether every row agrees or is listed, and every listed line is used.
bool report(const Replay& replay, bool all_operations) {
    Counts total;
    std::printf("%-52s %7s %7s %7s %7s\n", "operation", "agree", "listed", "differ", "skipped");
    for (const auto& [op, counts] : replay.counts) {
        std::printf("%-52s %7zu %7zu %7zu %7zu\n", op.c_str(), counts.agrees, counts.listed,
                    counts.differs, counts.skipped);
        total.agrees += counts.agrees;
        total.listed += counts.listed;
        total.differs += counts.differs;
        total.skipped += counts.skipped;
    }
    std::printf("%-52s %7zu %7zu %7zu %7zu\n", "all", total.agrees, total.listed, total.differs,
                total.skipped);
    for (const auto& [reason, rows] : replay.skipped) {
        std::printf("skipped %zu: %s\n", rows, reason.c_str());
    }
    bool fine = total.differs == 0;
    for (const Difference& difference : replay.differences) {
        if (all_operations && difference.rows == 0) {
            std::printf("no row differs as listed: %s\n", difference.text.c_str());
            fine = false;
        }
    }
    return fine;
}

void write_refusals(const Replay& replay) {
    const char* const file = std::getenv("RULES_REFUSALS");
    if (file == nullptr) {
        return;
    }
    std::ofstream stream(file);
    for (std::string message : replay.refusals) {
        std::replace(message.begin(), message.end(), '\n', ' ');
        stream << message << '\n';
    }
}

int run(int argc, char** argv) {
    Replay replay;
    const auto rows = read_rows(argv[1]);
    replay.differences = read_differences(argv[2]);
    const bool tells_shards = !rows.empty() && rows.front().tells_shards;
    replay.operations = tells_shards ? placed_operations() : all_operations();
    std::set<std::string> wanted(argv + 3, argv + argc);
    const bool is_selection = wanted.erase("--selection") > 0;
    for (const Row& row : rows) {
        if (wanted.empty() || wanted.contains(row.op)) {
            count(replay.counts[row.op], replay_row(replay, row));
        }
    }
    write_refusals(replay);
    return report(replay, wanted.empty() && !is_selection) ? 0 : 1;
}

}  // namespace

}  // namespace rules

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s <table> <differences> [<operation>...]\n", argv[0]);
        return 2;
    }
    for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS}) {
        std::signal(signal, rules::report_crash);
    }
    try {
        return rules::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
